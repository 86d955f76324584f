/// The types of this module that act as subscribers, and the vocabulary they use.
public enum Subscribers {}
