"""The gateway: a program in a container of its own, between the boxes' doors and the model endpoints."""
