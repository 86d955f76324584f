import Foundation
import Testing

/// Every numbered statement of MQTT 5 and MQTT 3.1.1 has a test, or a reason why there is none.
@Suite("MQTT statements")
struct StatementTests {
  private static let mqtt5 = Statement.table(
    [statements5Opening, statements5Messages, statements5Subscriptions, statements5Operation]
      .joined(separator: "\n"))
  private static let mqtt311 = Statement.table(
    [statements311Opening, statements311Rest].joined(separator: "\n"))

  /// The statements of appendix B of MQTT 5, by section. The text calls [MQTT-4.2.0-1] [MQTT-4.2-1].
  private static let numbers5 = """
    1.5.4:1-3 1.5.5:1 1.5.7:1 2.1.3:1 2.2.1:2-6 2.2.2:1 3.1.0:1-2 3.1.2:1-30 3.1.3:1-12 3.1.4:1-6 3.2.0:1-2
    3.2.2:1-22 3.3.1:1-13 3.3.2:1-20 3.3.4:1-10 3.4.2:1-3 3.5.2:1-3 3.6.1:1 3.6.2:1-3 3.7.2:1-3 3.8.1:1
    3.8.3:1-5 3.8.4:1-8 3.9.2:1-2 3.9.3:1-2 3.10.1:1 3.10.3:1-2 3.10.4:1-6 3.11.2:1-2 3.11.3:1-2 3.12.4:1
    3.14.0:1 3.14.1:1 3.14.2:1-4 3.14.4:1-3 3.15.1:1 3.15.2:1-3 4.1.0:1-2 4.2.0:1 4.3.1:1 4.3.2:1-5
    4.3.3:1-13 4.4.0:1-2 4.5.0:1-2 4.6.0:1-6 4.7.0:1 4.7.1:1-2 4.7.2:1 4.7.3:1-4 4.8.2:1-6 4.9.0:1-3
    4.12.0:1-7 4.12.1:1-2 4.13.1:1 4.13.2:1 6.0.0:1-4
    """

  /// The statements of appendix B of MQTT 3.1.1. There is no [MQTT-3.1.2-7].
  private static let numbers311 = """
    1.5.3:1-3 2.2.2:1-2 2.3.1:1-7 3.1.0:1-2 3.1.2:1-6,8-24 3.1.3:1-11 3.1.4:1-5 3.2.0:1 3.2.2:1-6 3.3.1:1-12
    3.3.2:1-3 3.3.4:1 3.3.5:1-2 3.6.1:1 3.8.1:1 3.8.3:1-3 3.8.4:1-6 3.9.3:1-2 3.10.1:1 3.10.3:1-2 3.10.4:1-6
    3.12.4:1 3.14.1:1 3.14.4:1-3 4.1.0:1-2 4.3.1:1 4.3.2:1-2 4.3.3:1-2 4.4.0:1 4.5.0:1-2 4.6.0:1-6 4.7.1:1-3
    4.7.2:1 4.7.3:1-4 4.8.0:1-2 6.0.0:1-4 7.0.0:1-2 7.1.1:1 7.1.2:1
    """

  @Test("the tables have every statement of the standards, once and in their order")
  func complete() {
    #expect(Self.mqtt5.map(\.number) == Statement.numbers(Self.numbers5))
    #expect(Self.mqtt5.count == 251)
    #expect(Self.mqtt311.map(\.number) == Statement.numbers(Self.numbers311))
    #expect(Self.mqtt311.count == 139)
  }

  @Test("every statement has a test, or a reason why there is none")
  func covered() {
    for statement in Self.mqtt5 + Self.mqtt311 {
      #expect(!statement.demand.isEmpty)
      #expect(!statement.tests.isEmpty || statement.note != nil, "\(statement) has neither")
    }
  }

  @Test("the tests that are named are there")
  func exist() throws {
    var declared: Set<String> = []
    let here = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    // Sessions are tested as values here; the other modules test the broker's gateways.
    let others = ["SluiceWebSocketTests", "SluiceDoorsTests"].map {
      here.appending(path: "../\($0)").standardized
    }
    for folder in [here] + others {
      for file in try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
      where file.pathExtension == "swift" {
        let text = try String(contentsOf: file, encoding: .utf8)
        for suite in text.split(separator: "@Suite").dropFirst() {
          guard let name = suite.firstMatch(of: /struct (\w+)/) else { continue }
          // A test is a function after its attribute.
          for test in suite.matches(of: /@Test\b(?s:.)*?func (\w+)\(/) {
            declared.insert("\(name.1).\(test.1)")
          }
        }
      }
    }
    #expect(declared.count > 80)
    for statement in Self.mqtt5 + Self.mqtt311 {
      for test in statement.tests { #expect(declared.contains(test), "\(statement): there is no \(test)") }
    }
  }
}
