"""The types of all data between Python and the page, and of saved data: one file a subject."""
