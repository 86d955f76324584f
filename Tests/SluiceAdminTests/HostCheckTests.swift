import Testing

@testable import SluiceAdmin

@Suite struct HostCheckTests {
  private func check(
    host: String?, origin: String? = nil, site: String? = nil, _ route: Route = .broker, isLocal: Bool = true,
    hasTLS: Bool = false
  ) -> Int {
    var request = AdminRequest()
    request.host = host
    request.origin = origin
    request.fetchSite = site
    do {
      try HostCheck.check(request, route, isLocal: isLocal, hasTLS: hasTLS)
      return 200
    } catch {
      return error.status
    }
  }

  @Test(arguments: [
    "localhost", "localhost:7421", "LOCALHOST:8080", "127.0.0.1", "127.0.0.1:7421", "127.3.2.1:1", "[::1]",
    "[::1]:7421",
  ])
  func thisMachineIsAnsweredByItsNames(_ host: String) {
    #expect(check(host: host) == 200)
  }

  @Test(arguments: [
    "example.org", "example.org:7421", "localhost.example.org", "127.0.0.1.example.org",
    "127.0.0.1@example.org",
    "localhost:", "localhost:x", "localhost:80:80", "127.1", "127.0.0.256", "127.0.0.-1", "::1", "[::1",
    "[::2]:7421",
    "0.0.0.0:7421", "128.0.0.1", "", "localhost.", "127.0.0.1 ",
  ])
  func otherNamesMayBeMadeToStandForIt(_ host: String) {
    #expect(check(host: host) == 403)
  }

  @Test func aRequestSaysWhomItIsFor() {
    #expect(check(host: nil) == 400)
    #expect(check(host: nil, isLocal: false) == 200)
    #expect(check(host: "metrics.example.org", isLocal: false) == 200)
  }

  @Test func pagesOfOthersGetNothing() {
    #expect(check(host: "localhost:7421", origin: "http://localhost:7421") == 200)
    #expect(check(host: "localhost:7421", origin: "http://localhost:80") == 403)
    #expect(check(host: "localhost:7421", origin: "https://example.org") == 403)
    #expect(check(host: "localhost:7421", origin: "null") == 403)
    #expect(check(host: "localhost:7421", origin: "https://localhost:7421") == 403)
    #expect(check(host: "localhost:7421", origin: "https://localhost:7421", hasTLS: true) == 200)
    #expect(check(host: "localhost:7421", origin: "http://localhost:7421", hasTLS: true) == 403)
    #expect(
      check(host: "broker.example.org", origin: "http://broker.example.org", isLocal: false, hasTLS: true)
        == 403)
    // A proxy in front may have added TLS.
    #expect(check(host: "metrics.example.org", origin: "https://metrics.example.org", isLocal: false) == 200)
    #expect(check(host: "metrics.example.org", origin: "https://example.org", isLocal: false) == 403)
    for site in ["same-origin", "none"] { #expect(check(host: "localhost", site: site) == 200) }
    for site in ["same-site", "cross-site"] {
      #expect(check(host: "localhost", site: site) == 403)
      #expect(check(host: "localhost", site: site, .events(topic: nil)) == 403)
      #expect(check(host: "localhost", site: site, .dashboard) == 200)
    }
  }
}
