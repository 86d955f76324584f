/// One figure of one run.
struct Reading {
  let column: Column
  let value: Double

  init(_ column: Column, _ value: Double) {
    self.column = column
    self.value = value
  }
}

/// What a figure says, which is also its column in the table.
struct Column: Hashable, Codable {
  enum Form: String, Codable {
    /// As it is, in three digits.
    case plain
    /// Shortened with a prefix: 5.1 M.
    case count
  }

  let title: String
  let form: Form

  init(_ title: String, _ form: Form = .plain) {
    self.title = title
    self.form = form
  }

  func text(_ value: Double) -> String {
    switch form {
    case .plain: Format.digits(value)
    case .count: Format.count(value)
    }
  }
}
