/// Finds the fenced code blocks of a page, with the directives before each.
struct Markdown {
  private let file: String
  private var blocks: [Block] = []
  private var failures: [Failure] = []
  /// The directives that the next block gets.
  private var pending: [Directive] = []

  /// The blocks of a page; a mistake in its fences or directives is a failure.
  static func blocks(of text: String, file: String) -> (blocks: [Block], failures: [Failure]) {
    var page = Markdown(file: file)
    page.read(text.textLines.enumerated().map { (number: $0 + 1, text: $1) })
    return (page.blocks, page.failures)
  }

  /// The blocks of the doc comments in a Swift file.
  static func docComments(of source: String, file: String) -> (blocks: [Block], failures: [Failure]) {
    var page = Markdown(file: file)
    var comment: [(number: Int, text: String)] = []
    for (index, line) in source.textLines.enumerated() {
      let trimmed = line.trimmingSpaces
      if trimmed.hasPrefix("///") {
        let text = trimmed.dropFirst(3)
        comment.append((index + 1, String(text.hasPrefix(" ") ? text.dropFirst() : text)))
      } else {
        page.read(comment)
        comment = []
      }
    }
    page.read(comment)
    return (page.blocks, page.failures)
  }

  private init(file: String) {
    self.file = file
  }

  private mutating func read(_ lines: [(number: Int, text: String)]) {
    var rest = lines[...]
    while let line = rest.popFirst() {
      let text = line.text.trimmingSpaces
      if let fence = Fence(line.text) {
        readBlock(fence, at: line.number, from: &rest)
      } else if text.hasPrefix("<!--") {
        readComment(text, at: line.number, from: &rest)
      } else if !text.isEmpty {
        reportPending()
      }
    }
    reportPending()
  }

  private mutating func readBlock(
    _ fence: Fence, at number: Int, from rest: inout ArraySlice<(number: Int, text: String)>
  ) {
    var block = Block(file: file, line: number, language: fence.language, lines: [], directives: pending)
    pending = []
    while let line = rest.popFirst() {
      if fence.isClosed(by: line.text) {
        blocks.append(block)
        return
      }
      block.lines.append(
        String(line.text.dropFirst(line.text.prefix(fence.indent).prefix { $0 == " " }.count)))
    }
    failures.append(block.failure("the block has no end"))
  }

  private mutating func readComment(
    _ first: String, at number: Int, from rest: inout ArraySlice<(number: Int, text: String)>
  ) {
    var lines = [String(first.dropFirst(4))]
    while !(lines.last ?? "").contains("-->"), let line = rest.popFirst() { lines.append(line.text) }
    guard let last = lines.popLast(), let end = last.firstRange(of: "-->") else { return }
    lines.append(String(last[..<end.lowerBound]))
    let head = lines.removeFirst().trimmingSpaces
    guard head.hasPrefix("example:") else { return }
    if lines.last?.trimmingSpaces == "" { lines.removeLast() }
    let text = head.dropFirst("example:".count).trimmingSpaces
    if let directive = Directive(text, body: lines, line: number) {
      pending.append(directive)
    } else {
      failures.append(Failure(file: file, line: number, message: "'\(text)' is no directive"))
    }
  }

  /// Reports directives that no block follows: a directive belongs to the block directly after it.
  private mutating func reportPending() {
    for directive in pending {
      failures.append(Failure(file: file, line: directive.line, message: "no block follows the directive"))
    }
    pending = []
  }
}

/// A line that opens a code block.
private struct Fence {
  let indent: Int
  let mark: Character
  let length: Int
  let language: String

  init?(_ line: String) {
    indent = line.prefix { $0 == " " }.count
    let text = line.dropFirst(indent)
    guard let mark = text.first, mark == "`" || mark == "~" else { return nil }
    self.mark = mark
    length = text.prefix { $0 == mark }.count
    guard length >= 3 else { return nil }
    language = text.dropFirst(length).trimmingSpaces
    if mark == "`", language.contains("`") { return nil }
  }

  func isClosed(by line: String) -> Bool {
    let text = line.trimmingSpaces
    return text.count >= length && text.allSatisfy { $0 == mark }
  }
}
