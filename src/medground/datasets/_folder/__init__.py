"""What the datasets in a folder of their publisher share: tables, pictures, vocabulary, the reading itself."""
