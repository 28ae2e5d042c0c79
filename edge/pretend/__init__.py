"""A pretend provider, a pretend media plane, and a scripted run that judges the system by them."""
