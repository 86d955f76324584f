import SluiceAccess
import SluiceCommand
import SluiceTLS
import Testing

@testable import SluiceAdmin

/// The page as assembled from its files; `DashboardTests` shows it in a browser.
@Suite struct DashboardPageTests {
  private let page = String(decoding: Dashboard.response.body, as: UTF8.self)

  @Test func styleAndScriptStandInThePage() {
    #expect(page.hasPrefix("<!doctype html>\n") && page.hasSuffix("})();\n</script>\n</html>"))
    #expect(!page.contains("dashboard.css") && !page.contains("dashboard.js"))
  }

  /// The dialogs contain each setting of a topic.
  @Test func theScriptKnowsEverySetting() throws {
    let start = try #require(page.firstRange(of: "const topicSettings = [")).upperBound
    let list = page[start...].prefix { $0 != ";" }
    for option in TopicOption.all { #expect(list.contains("name: \"\(option.name)\""), "\(option.name)") }
    #expect(list.split(separator: "name: ").count == TopicOption.all.count + 1)
  }

  @Test(arguments: ["style", "script"])
  func thePolicyHasTheHashOfWhatStandsInThePage(element: String) throws {
    let policy = try #require(Dashboard.response.headers.first { $0.name == "Content-Security-Policy" }).value
    let start = try #require(page.firstRange(of: "<\(element)>")).upperBound
    let end = try #require(page.firstRange(of: "</\(element)>")).lowerBound
    let hash = Base64Text.standard.encode(sha256(Array(page[start..<end].utf8)))
    #expect(policy.contains("\(element)-src 'sha256-\(hash)=';"))
  }
}
