import SluiceClient
import SluiceCommand
import Testing

@testable import SluiceTool

@Suite("How the tool reaches the nodes of a cluster")
struct RoutingOptionTests {
  private func routing(
    _ arguments: [String], environment: [String: String] = [:]
  ) throws(UsageError) -> ClientRouting {
    let parser = ArgumentParser(CommandPage("sluice", summary: ""), shared: Commands.shared)
    let access = try ClientAccess([
      parser.parse(arguments, environment: { _ in nil }),
      parser.parse([String](), environment: { environment[$0] }),
    ])
    var options = ClientOptions()
    access.apply(to: &options)
    return options.routing
  }

  @Test("directly, unless an option or the environment says otherwise")
  func reach() throws {
    #expect(try routing([]) == .direct)
    #expect(try routing(["--routing", "relay"]) == .relay)
    #expect(try routing([], environment: ["SLUICE_ROUTING": "relay"]) == .relay)
    #expect(try routing(["--routing", "direct"], environment: ["SLUICE_ROUTING": "relay"]) == .direct)
  }

  @Test("another word is refused")
  func wrong() {
    #expect(throws: UsageError.self) { try routing(["--routing", "somehow"]) }
  }
}
