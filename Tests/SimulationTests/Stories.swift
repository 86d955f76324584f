import Testing

/// The scenarios that are made from seeds. One at a time: there are so many that they would delay all other tests.
@Suite(.serialized) enum Stories {}

/// Scenarios of a single feature.
@Suite(.serialized) enum ShortStories {}
