"""The judges. Installed in the verifier image and run there only; imports nothing of the suite."""
