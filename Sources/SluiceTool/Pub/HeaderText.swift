import SluiceClient
import SluiceCommand

/// A header as an argument: `NAME=VALUE`.
enum HeaderText {
  static func parse(_ text: String) throws(ValueError) -> Message.Header {
    guard let equals = text.firstIndex(of: "="), equals > text.startIndex else {
      throw ValueError("'\(text)' isn't a header; write NAME=VALUE")
    }
    return Message.Header(String(text[..<equals]), String(text[text.index(after: equals)...]))
  }
}
