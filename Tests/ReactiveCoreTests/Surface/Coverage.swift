/// The ways in which a part of the API is exercised.
struct Form: OptionSet, Hashable, CustomStringConvertible {
  var rawValue: Int

  /// Values come through, with the history of both sides.
  static let normal = Form(rawValue: 1 << 0)
  /// What is asked of upstream, for several demands of downstream.
  static let demand = Form(rawValue: 1 << 1)
  static let finish = Form(rawValue: 1 << 2)
  static let failure = Form(rawValue: 1 << 3)
  /// Before, during or after.
  static let cancel = Form(rawValue: 1 << 4)
  /// The source delivers or finishes within the request or the subscription.
  static let immediate = Form(rawValue: 1 << 5)
  /// An error thrown by a closure.
  static let thrown = Form(rawValue: 1 << 6)
  /// Called back from within a call.
  static let reentrancy = Form(rawValue: 1 << 7)
  /// Everything is released.
  static let lifecycle = Form(rawValue: 1 << 8)
  /// From several threads at once.
  static let race = Form(rawValue: 1 << 9)
  /// What it is equal to, how it describes itself, and the like: nothing of the stream.
  static let identity = Form(rawValue: 1 << 10)

  /// What `expectOrderlyStream` checks.
  static let orderly: Form = [.demand, .finish, .failure, .cancel, .lifecycle]
  /// What `expectStreamWithstandsReentrancy` checks.
  static let reentrant: Form = [.immediate, .reentrancy, .cancel]
  /// What `expectReduction` checks.
  static let reduction: Form = [
    .normal, .demand, .finish, .failure, .cancel, .immediate, .reentrancy, .lifecycle,
  ]
  /// What `expectEarlyResult` checks.
  static let early: Form = [.normal, .demand, .cancel, .reentrancy, .lifecycle]
  /// What `expectThrownErrorEnds` checks.
  static let throwing: Form = [.thrown, .cancel, .lifecycle]

  var description: String {
    let names = [
      "normal", "demand", "finish", "failure", "cancel", "immediate", "thrown", "reentrancy", "lifecycle",
      "race", "identity",
    ]
    return names.indices.filter { rawValue & 1 << $0 != 0 }.map { names[$0] }.joined(separator: ", ")
  }

  /// The forms that a part of the API must cover, going by its name.
  static func required(for api: String) -> Form {
    guard api.contains("(") else { return .normal }
    let forms: Form = [
      .normal, .demand, .finish, .failure, .cancel, .immediate, .reentrancy, .lifecycle,
    ]
    return api.hasPrefix("try") ? forms.union(.thrown) : forms
  }
}

/// One row of the coverage table: a part of the API and the tests that exercise it.
struct Coverage {
  /// The name as in Combine; with labels for operators.
  var api: String
  /// The file with the tests, without its ending.
  var file: String
  /// The tests, and the forms that each covers.
  var tests: [String: Form]
  /// Forms that the API has no room for, and why.
  var excused: [Form: String]

  init(
    _ api: String, in file: String, except excused: [Form: String] = [:], _ tests: [String: Form]
  ) {
    self.api = api
    self.file = file
    self.excused = excused
    self.tests = tests
  }

  /// All rows.
  static var table: [Coverage] {
    operatorsAToE + operatorsFToP + operatorsQToZ + operatorsThrowing + types
  }

  var allExcused: Form { excused.keys.reduce([]) { $0.union($1) } }

  /// All that is covered.
  var forms: Form { tests.values.reduce([]) { $0.union($1) } }
}
