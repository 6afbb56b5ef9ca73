"""The database layer, and the only package that imports psycopg."""
