"""HTTP: one router per wire protocol, each a thin map onto the SQL functions (extra `http`)."""
