//! Which design for how many documents, at which price.
