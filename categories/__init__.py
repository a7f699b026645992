"""What is asked: categories, their tasks, and the data an agent is given."""
