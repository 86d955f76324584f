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
}
