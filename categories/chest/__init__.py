"""The patient that chest CT and chest X-ray share: one cleaned real scan, warped, with lung trees of its own."""
