"""Work and hardware parameters into seconds, by equations. No learning; numpy only."""
