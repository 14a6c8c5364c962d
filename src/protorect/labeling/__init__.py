"""A few labelled examples and a pile of pictures: labels, folders, a contact sheet."""
