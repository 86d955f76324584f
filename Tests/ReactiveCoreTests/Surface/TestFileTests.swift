import Testing

/// Every public source file and every publisher has a test file with its name.
@Suite struct TestFileTests {
  /// Source files whose tests are in other files, and the reason.
  static let elsewhere: [String: (test: String?, why: String)] = [
    "MergeFiveToEight": ("MergeTests", "the same for more publishers"),
    "MergeWith": ("MergeTests", "the operators that make the publishers of Merge"),
    "JustOperators": ("SpecialisedOperatorTests", "operators that are compared with the general ones"),
    "OptionalPublisherOperators": (
      "SpecialisedOperatorTests", "operators that are compared with the general ones"
    ),
    "ResultPublisherOperators": (
      "SpecialisedOperatorTests", "operators that are compared with the general ones"
    ),
    "SequenceOperators": ("SpecialisedOperatorTests", "operators that are compared with the general ones"),
    "EffectScope": ("EffectTests", "names the effects that are cancelled together"),
    "WallClockTime": ("SchedulerTimeTypeTests", "the time of run loops and operation queues"),
    "DispatchQueueSchedulerTimeType": ("DispatchQueueSchedulerTests", "the time of that scheduler"),
    "Scheduler": ("ImmediateSchedulerTests", "a protocol and what it does for all schedulers"),
  ]

  /// The public source files and the publishers that have no test file.
  static func untested(in tree: PackageTree) -> [String] {
    let tests = tree.tests
    return tree.publishers.union(tree.publicSources).sorted().filter { source in
      if let place = elsewhere[source] {
        return place.test.map { tests[$0] == nil } ?? false
      }
      return tests[source + "Tests"] == nil
    }
  }

  @Test func everyPublicFileAndEveryPublisherHasATestFile() throws {
    let tree = try PackageTree.ours()
    #expect(tree.publicSources.count > 50)
    #expect(tree.publishers.count > 60)
    #expect(Self.untested(in: tree) == [])
  }

  @Test func noExceptionIsLeftOver() throws {
    let tree = try PackageTree.ours()
    let sources = Set(tree.publicSources)
    #expect(Self.elsewhere.keys.filter { !sources.contains($0) }.sorted() == [])
    #expect(Self.elsewhere.keys.filter { tree.tests[$0 + "Tests"] != nil }.sorted() == [])
  }

  @Test func aMissingTestFileIsNoticed() {
    let publisher = "extension Publisher {\n  @inlinable\n  public func twist() -> Int { 1 }\n}\n"
    var tree = PackageTree(files: ["Sources/ReactiveCore/Publishers/Twist.swift": publisher])
    #expect(Self.untested(in: tree) == ["Twist"])
    tree.files["Tests/ReactiveCoreTests/Publishers/TwistTests.swift"] = "@Suite struct TwistTests {}\n"
    #expect(Self.untested(in: tree) == ["Twist"])
    tree.files["Tests/ReactiveCoreTests/Publishers/TwistTests.swift"] = "  @Test func twists() {}\n"
    #expect(Self.untested(in: tree) == [])
    tree.files["Sources/ReactiveCore/Publishers/Twister.swift"] = "final class Twister {}\n"
    #expect(Self.untested(in: tree) == [])
    tree.files["Sources/CombineExtras/A+B.swift"] = "public final class C {}\n"
    #expect(Self.untested(in: tree) == ["AB"])
    let publishers = """
      extension Publishers {
        public struct Twist2<Upstream: Publisher>: Publisher {
        }
        public struct Turn<A: Publisher, B: Publisher<A.Output>>:
          Publisher
        {
        }
        public final class Toss<Upstream: Publisher>: ConnectablePublisher where Upstream.Failure == Never {
        }
        public struct Other<Upstream: Publisher> {
        }
        struct Hidden<Upstream: Publisher>: Publisher {
        }
      }

      """
    tree.files["Sources/ReactiveCore/Publishers/Twist.swift"] = publishers
    #expect(Self.untested(in: tree) == ["AB", "Toss", "Turn"])
  }
}
