"""From a trained model and documents to answers: predictions, and which phrases decided."""
