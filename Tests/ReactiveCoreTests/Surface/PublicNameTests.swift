import Testing

/// `PortableCombine` exports only Combine's names. So a program that defines other names compiles on every platform.
@Suite struct PublicNameTests {
  /// Names that Combine doesn't declare, and why they don't collide.
  static let exceptions: [String: String] = [
    "AsyncPublisher.Failure": "a type that the protocol AsyncSequence asks for",
    "AsyncPublisher.Iterator.Failure": "a type that the protocol AsyncIteratorProtocol asks for",
    "AsyncPublisher.Iterator.next(isolation:)": "a function that the protocol AsyncIteratorProtocol asks for",
    "AsyncThrowingPublisher.Failure": "a type that the protocol AsyncSequence asks for",
    "AsyncThrowingPublisher.Iterator.Failure": "a type that the protocol AsyncIteratorProtocol asks for",
    "AsyncThrowingPublisher.Iterator.next(isolation:)":
      "a function that the protocol AsyncIteratorProtocol asks for",
    "DispatchQueue.SchedulerTimeType.Stride.-(operand:)": "an operator that the protocol SignedNumeric has",
    "DispatchQueue.SchedulerTimeType.Stride.negate()": "a function that the protocol SignedNumeric has",
  ]

  static func exported() throws -> Set<String> {
    let tree = try PackageTree(reading: [
      "Sources/ReactiveCore", "Sources/ReactiveFoundation", "Sources/PortableCombine",
    ])
    var names = PublicNames()
    for source in tree.files.values { names.read(source) }
    return names.names
  }

  @Test func nothingIsExportedThatCombineLacks() throws {
    let added = try Self.exported().subtracting(CombineNames.all)
    let unexplained = added.subtracting(Self.exceptions.keys).sorted()
    #expect(unexplained == [])
    let unneeded = Set(Self.exceptions.keys).subtracting(added).sorted()
    #expect(unneeded == [], "exceptions that aren't needed")
  }

  @Test func nothingIsMissingThatCombineHas() throws {
    #expect(CombineNames.all.count > 1_200)
    let missing = try CombineNames.all.subtracting(Self.exported()).sorted()
    #expect(missing == [])
  }

  @Test func namesAreReadWithTheirTypes() {
    var names = PublicNames()
    names.read(
      """
      public struct Box<Value>: Sendable {
        public typealias Output = Value
        public private(set) var value: Value
        @usableFromInline let hidden: Int
        var isHidden: Bool { true }

        @inlinable
        public init?<T: Sequence<Int>>(exactly source: T, _ other: (Int, Int) -> Void) {
          let local = 1
          public_call(local)
        }

        public static prefix func - (operand: Box) -> Box { operand }
        public static func <= (lhs: Box, rhs: Box) -> Bool { true }
        public subscript(at index: Int) -> Int { 1 }
        public final class Inner {
          public func go(on: Int) {}
        }
        enum Hidden { case one }
        @_spi(X) public func _hidden() {}
      }

      public enum Choice<
        Value
      >: Sendable
      where Value: Equatable
      {
        case one(Int)
        case two
        func hidden() {}
      }

      public protocol Able<Output> {
        associatedtype Output
        func act<T>(
          _ one: T, by two: @escaping (T) -> Void = { _ in }
        )
      }

      extension Swift.Sequence {
        public func `catch`(_ body: Int) {}
        func hidden() {}
        #if os(Linux)
          public var onLinux: Int { 1 }
        #endif
      }

      public protocol _Shared {}

      extension _Shared {
        public func shared() {}
      }

      public struct User: Sendable, _Shared {}

      public func global(a: Int) {}
      struct Own { public var hidden = 1 }

      """)
    #expect(
      names.names == [
        "Box", "Box.Output", "Box.value", "Box.init(exactly:_:)", "Box.-(operand:)", "Box.<=(lhs:rhs:)",
        "Box.subscript(at:)", "Box.Inner", "Box.Inner.go(on:)", "Choice", "Choice.one", "Choice.two", "Able",
        "Able.Output", "Able.act(_:by:)", "Swift.Sequence.catch(_:)", "Swift.Sequence.onLinux", "global(a:)",
        "User", "User.shared()",
      ])
  }
}
