import Testing

/// The scenarios made from seeds. They run one at a time, since so many of them would delay all other tests.
@Suite(.serialized) enum Stories {}

/// Scenarios of a single feature.
@Suite(.serialized) enum ShortStories {}
