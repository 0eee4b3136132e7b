"""Studies: one question, put to many protocols on many networks, with a verdict in words for each network."""
