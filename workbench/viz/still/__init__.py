"""Still pictures: rows as HTML and SVG."""
