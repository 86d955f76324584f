import SluiceCommand
import SluiceDoors
import Testing

@testable import SluiceDaemon

@Suite("Settings for web pages")
struct OriginSettingsTests {
  private func settings(_ arguments: String...) throws -> DaemonSettings {
    try DaemonSettings(ArgumentParser(DaemonPage.page()).parse(arguments))
  }

  @Test("credentials need origins by name, and fields need names of fields")
  func credentials() throws {
    #expect(
      try settings("--origins", "https://a.example", "--origin-credentials", "on").doors.allowsCredentials)
    for origins in [[], ["--origins", "any"]] {
      let error = #expect(throws: UsageError.self) {
        try DaemonSettings(
          ArgumentParser(DaemonPage.page()).parse(origins + ["--origin-credentials", "on"]))
      }
      #expect(error?.description.contains("name the origins with --origins") == true)
    }
    #expect(
      try settings("--origin-headers", "X-A", "--origin-headers", "X-B").doors.requestFields == [
        "X-A", "X-B",
      ])
    for name in ["", "X A", "X:", "é"] {
      #expect(throws: UsageError.self) { try settings("--origin-headers", name) }
    }
    let times = try settings("--http-link-time", "5s", "--http-link-longest", "10m").doors
    #expect(times.linkTime == .seconds(5) && times.longestLinkTime == .seconds(600))
  }
}
