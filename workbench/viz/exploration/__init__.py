"""What is shown: `explore`, the Exploration it returns, and planning it again."""
