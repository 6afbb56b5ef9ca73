"""The database side of treadle; the only place that imports psycopg."""
