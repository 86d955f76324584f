import Foundation
import PortableCombine
import Testing

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// A program that defines names of `CombineExtras` itself uses its own definitions: `PortableCombine` re-exports none of them.
@Suite struct NameCollisionTests {
  @Test func typesAreTheProgramsOwn() {
    let owners = [
      AsyncSequencePublisher.owner, DecodedDataTaskError.owner, DispatchTimerConfiguration.owner,
      Effect.owner,
      EffectScope.owner, Pausable.owner, PausableCancellable.owner, Reducer.owner, ReplaySubject.owner,
      Store.owner, Publishers.DispatchTimer.owner, Publishers.ShareReplay.owner,
      Subscribers.PausableSink.owner, URLSession.DecodedDataTaskPublisher.owner,
    ]
    #expect(Set(owners) == ["program"])
  }

  @Test func membersAreTheProgramsOwn() throws {
    let url = try #require(URL(string: "http://localhost/"))
    let session = URLSession.shared
    let results = [
      Publishers.timer(interval: .seconds(1)),
      Just(1).share(replay: 1), Just(1).share(replay: 1, scope: Publishers.ReplayScope.forever),
      Just(1).eraseToEffect(), Just<Int?>(1).unwrap(), Just(1).pausableSink { _ in true },
      session.decodedDataTaskPublisher(for: url, as: Int.self),
      session.decodedDataTaskPublisher(for: URLRequest(url: url), as: Int.self, decoder: JSONDecoder()),
      AsyncStream<Int> { $0.finish() }.publisher,
    ]
    #expect(Set(results) == ["program"])
  }

  @Test func theyAreAllTheNamesThatTheExtrasHave() throws {
    let file = URL(filePath: #filePath)
    let folder = file.deletingLastPathComponent()
    let root = folder.deletingLastPathComponent().deletingLastPathComponent()
    let own = Set(
      try String(contentsOf: folder.appending(path: "OwnNames.swift"), encoding: .utf8)
        .matches(of: /\b(?:enum|func|var) (\w+)/).map { String($0.1) })
    let sources = root.appending(path: "Sources/CombineExtras")
    var names: Set<String> = []
    for path in try FileManager.default.subpathsOfDirectory(atPath: sources.path)
    where path.hasSuffix(".swift") {
      names.formUnion(Self.names(in: try String(contentsOf: sources.appending(path: path), encoding: .utf8)))
    }
    #expect(names.count > 15)
    #expect(names.subtracting(own) == [])
    #expect(own.subtracting(names) == [])
  }

  /// The public names of a file at its top level, or in an extension of a type of another module.
  static func names(in source: String) -> Set<String> {
    let declaration = /public (?:static |final )*(?:struct|class|enum|protocol|typealias|func|var|let) (\w+)/
    var names = Set(
      source.matches(of: /(?m)^public (?:final )?(?:struct|class|enum|protocol) (\w+)/).map { String($0.1) })
    // An extension ends at the next brace at the start of a line.
    let foreign =
      /(?m)^extension (?:Publisher|Publishers|Subscribers|URLSession|AsyncSequence)\b[^{.]*\{\n((?:(?!^\}).*\n)*)/
    for block in source.matches(of: foreign) {
      for line in block.1.split(separator: "\n") where line.hasPrefix("  public ") {
        if let match = line.firstMatch(of: declaration) { names.insert(String(match.1)) }
      }
    }
    return names
  }

  @Test func aNameThatIsMissingIsNoticed() {
    let source = """
      public final class Widget {
        public var inside = 1
      }
      extension Publisher where Output: Equatable {
        public func twist() {}
      }
      extension Publishers {
        public struct Twist {
          public let upstream: Int
        }
      }
      extension Publishers.Twist {
        public func member() {}
      }

      """
    #expect(Self.names(in: source) == ["Widget", "twist", "Twist"])
  }
}
