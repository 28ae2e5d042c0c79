"""How this project is installed and what it runs on."""
