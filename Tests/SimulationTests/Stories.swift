import Testing

/// The stories that are made from seeds. One at a time: there are so many that they would keep all others waiting.
@Suite(.serialized) enum Stories {}

/// Those of one thing alone, beside the great ones.
@Suite(.serialized) enum ShortStories {}
