"""The glossary: a row for each word that the page and the course explain."""
