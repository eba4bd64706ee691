//! Published figures beside Weirs.
