/// The types of this module that act as publishers.
public enum Publishers {}
