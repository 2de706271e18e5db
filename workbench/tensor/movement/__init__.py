"""Movement methods: shapes, indexes, joins, padding."""
