"""N-gram features of documents for scikit-learn: GrammarVectorizer and its files."""
