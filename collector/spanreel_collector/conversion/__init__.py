"""From what was exported to session documents: files of any size, in bounded memory."""
