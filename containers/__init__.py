"""Where agents and verifiers run: images, boxes, disks, and the one door out."""
