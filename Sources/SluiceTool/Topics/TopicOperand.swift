import SluiceCommand
import SluiceWire

/// A topic's name as an argument.
enum TopicOperand {
  /// - Throws: `UsageError` when no topic can have that name.
  static func read(_ name: String) throws(UsageError) -> String {
    do {
      try TopicName.validate(name)
      return name
    } catch {
      throw UsageError(error.message)
    }
  }

  /// - Throws: `UsageError` when it is neither a name that a topic can have nor a pattern of such.
  static func readPattern(_ text: String) throws(UsageError) -> (text: String, isPattern: Bool) {
    do {
      return (text, try TopicPattern(text).hasWildcards)
    } catch {
      throw UsageError(error.message)
    }
  }
}
