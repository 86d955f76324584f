import Testing

/// The table of operators is complete.
@Suite struct OperatorTableTests {
  @Test func everyOperatorIsInTheTable() throws {
    let tree = try PackageTree(reading: ["Sources/ReactiveCore"])
    let declared = tree.files.values.reduce(into: Set<String>()) { $0.formUnion($1.operators) }
    let listed = Set(OperatorCase.all.map(\.name)).union(OperatorCase.noOperators)
    #expect(declared.count > 90)
    #expect(declared.subtracting(listed).sorted() == [], "not in the table")
    #expect(listed.subtracting(declared).sorted() == [], "in the table alone")
  }

  @Test func noCaseStandsTwice() {
    let names = OperatorCase.all.map { "\($0.name) \($0.detail) \($0.upstreams)" }
    #expect(names.count == Set(names).count)
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
