"""Files, locks, arrays, parameters and text: what every other package may use."""
