//! A study of a made-up collection: documents of shingle paragraphs and links, without a page of HTML.
