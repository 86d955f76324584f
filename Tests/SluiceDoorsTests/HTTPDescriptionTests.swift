import Foundation
import SluiceDoors
import Testing

/// `packaging/openapi-doors.yaml` describes exactly the resources of the gateway, each with exactly its methods.
@Suite struct HTTPDescriptionTests {
  private static let methods = ["delete", "get", "patch", "post", "put"]

  /// The paths of the description, each with its methods.
  private static func described() throws -> [(path: String, methods: [String])] {
    let root = URL(filePath: #filePath).appending(path: "../../..").standardized
    let text = try String(
      contentsOf: root.appending(path: "packaging/openapi-doors.yaml"), encoding: .utf8)
    var paths: [(path: String, methods: [String])] = []
    for line in text.split(separator: "\n") {
      if line.hasPrefix("  /"), line.hasSuffix(":") {
        paths.append((String(line.dropFirst(2).dropLast()), []))
      } else if line.hasPrefix("    "), line.hasSuffix(":"),
        methods.contains(String(line.dropFirst(4).dropLast()))
      {
        paths[paths.count - 1].methods.append(String(line.dropFirst(4).dropLast()))
      }
    }
    return paths
  }

  @Test func theDescriptionHasEachResource() throws {
    let groups = "/topics/{topic}/groups/{group}"
    let expected = [
      "/links", "/replies/{inbox}/{id}", "/topics", "/topics/{topic}", "/topics/{topic}/cursors/{cursor}",
      "\(groups)/ack", "\(groups)/extend", "\(groups)/leave", "\(groups)/next",
      "\(groups)/reject", "\(groups)/retry", "/topics/{topic}/request", "/topics/{topic}/requests",
      "/topics/{topic}/settings", "/topics/{topic}/trim",
    ]
    #expect(try Self.described().map(\.path).sorted() == expected.sorted())
  }

  @Test func theDoorServesWhatIsDescribedAndNothingElse() throws {
    let stage = try HTTPStage()
    for (path, methods) in try Self.described() {
      let target = path.replacing("{topic}", with: "t").replacing("{", with: "").replacing("}", with: "")
      for method in Self.methods {
        let answer = stage.ask("\(method.uppercased()) \(target)")
        let isServed = answer.status != 405 && !answer.body.contains("there is nothing at")
        #expect(isServed == methods.contains(method), "\(method) \(path): \(answer.text)")
      }
    }
  }
}
