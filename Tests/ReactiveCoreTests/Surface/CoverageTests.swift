import Testing

/// The coverage table tells the truth, and the whole.
@Suite struct CoverageTests {
  /// The tests that rows name and that do not exist.
  static func missingTests(of rows: [Coverage], in tree: PackageTree) -> [String] {
    let tests = tree.tests
    return rows.flatMap { row -> [String] in
      guard let existing = tests[row.file] else { return ["\(row.api): \(row.file).swift"] }
      return row.tests.keys.filter { !existing.contains($0) }.sorted().map { "\(row.api): \(row.file).\($0)" }
    }
  }

  @Test func everyRowNamesTestsThatExist() throws {
    let missing = Self.missingTests(of: Coverage.table, in: try PackageTree.ours())
    #expect(missing.isEmpty, "no such test: \(missing.joined(separator: ", "))")
  }

  @Test func everyRowCoversTheFormsItMust() {
    for row in Coverage.table {
      let missing = Form.required(for: row.api).subtracting(row.forms).subtracting(row.allExcused)
      #expect(missing.isEmpty, "\(row.api) lacks \(missing)")
    }
  }

  @Test func excusesAreNeeded() {
    for row in Coverage.table {
      #expect(row.forms.isDisjoint(with: row.allExcused), "\(row.api) is excused from what it covers")
    }
  }

  @Test func noRowStandsTwice() {
    let names = Coverage.table.map(\.api)
    #expect(names.count == Set(names).count)
  }

  @Test func everyOperatorHasARow() throws {
    let tree = try PackageTree.ours()
    let operators = tree.files.filter { $0.key.hasPrefix("Sources/") }.reduce(into: Set<String>()) {
      $0.formUnion($1.value.operators)
    }
    #expect(operators.count > 50)
    let missing = operators.subtracting(Coverage.table.map(\.api)).sorted()
    #expect(missing.isEmpty, "no row for \(missing.joined(separator: ", "))")
  }

  @Test func aRowForATestThatIsGoneIsNoticed() {
    let tree = PackageTree(files: [
      "Tests/ReactiveCoreTests/TwistTests.swift": "  @Test(arguments: [1, 2]) func twists(number: Int) {}\n"
    ])
    let rows = [
      Coverage("twist()", in: "TwistTests", ["twists": [.normal], "turns": [.cancel]]),
      Coverage("turn()", in: "TurnTests", ["turns": [.normal]]),
    ]
    #expect(
      Self.missingTests(of: rows, in: tree) == ["twist(): TwistTests.turns", "turn(): TurnTests.swift"])
  }

  @Test func operatorsAreReadWithTheirLabels() {
    let source = """
      extension Publisher where Output: Equatable {
        /// A function.
        @inlinable
        public func twist<T, S: Sequence<T>>(
          _ one: (Int, [T]) -> Void = { _ in }, by two: @escaping (S, T) throws -> Bool
        ) -> Int { 1 }

        public func turn() {}
        func hidden(_ number: Int) {}
      }

      extension Publishers.Twist {
        public func other() {}
      }

      """
    #expect(source.operators == ["twist(_:by:)", "turn()"])
  }
}
