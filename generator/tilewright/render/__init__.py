"""Drive copier: locate the template, turn a request into answers, render it into changes."""
