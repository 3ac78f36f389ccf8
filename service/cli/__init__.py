"""What talks to a person: commands, tables, progress. No arithmetic."""
