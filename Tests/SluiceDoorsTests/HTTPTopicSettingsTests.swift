import SluiceDoors
import Testing

/// A topic's settings over HTTP, as parameters and as a body.
@Suite struct HTTPTopicSettingsTests {
  private let json = "Content-Type: application/json"

  @Test func settingsMayBeABody() throws {
    let stage = try HTTPStage()
    let body = #"{"settings":{"replay-records":3,"flow":"lossless","auto-delete":false}}"#
    #expect(stage.ask("PUT /topics/prices", body, json).status == 200)
    let shown = stage.ask("GET /topics/prices/settings").body
    for part in [#""replay-records":"3""#, #""flow":"lossless""#, #""auto-delete":"off""#] {
      #expect(shown.contains(part), "\(shown)")
    }
    #expect(stage.ask("PATCH /topics/prices", #"{"settings":{"flow":"free"}}"#, json).status == 200)
    #expect(stage.ask("GET /topics/prices/settings").body.contains(#""flow":"free""#))
  }

  @Test func settingsThatAreShownMayBeSentBack() throws {
    let stage = try HTTPStage()
    #expect(stage.ask("PUT /topics/one?preset=shared:2&replay-age=48h").status == 200)
    func settings(_ topic: String) throws -> Substring {
      let shown = stage.ask("GET /topics/\(topic)/settings").body
      let member = try #require(shown.firstRange(of: #""settings":{"#))
      let end = try #require(shown[member.upperBound...].firstIndex(of: "}"))
      return shown[member.lowerBound...end]
    }
    let stated = try settings("one")
    #expect(stage.ask("PUT /topics/two", "{\(stated)}", json).status == 200)
    #expect(try settings("two") == stated)
  }

  @Test(arguments: [
    ("PUT /topics/t", #"{"replay-records":3}"#, "the body needs \\\"settings\\\""),
    ("PUT /topics/t", #"{"settings":[]}"#, "the body needs \\\"settings\\\""),
    ("PUT /topics/t", #"{"settings":{},"topic":"t"}"#, "the member 'topic' isn't known"),
    ("PUT /topics/t", #"{"settings":{"flwo":"free"}}"#, "did you mean 'flow'"),
    ("PUT /topics/t", #"{"settings":{"flow":null}}"#, "flow: a text or a number"),
    ("PUT /topics/t", "replay-records=3", "isn't JSON"), ("PUT /topics/t", "[]", "isn't an object"),
    ("PUT /topics/t?flow=free", #"{"settings":{"replay-records":3}}"#, "use one of them"),
    ("PATCH /topics/t", #"{"settings":{"flow":"fre"}}"#, "did you mean 'free'"),
  ])
  func otherBodiesAreRefused(line: String, body: String, part: String) throws {
    let stage = try HTTPStage()
    let answer = stage.ask(line, body, json)
    #expect(answer.status == 400 && answer.body.contains(part), "\(answer.body)")
    #expect(stage.ask("GET /topics/t/settings").status == 404)
  }

  @Test func aBodyInAContentCodingIsRefused() throws {
    let stage = try HTTPStage()
    let answer = stage.ask("PUT /topics/t", #"{"settings":{}}"#, json, "Content-Encoding: gzip")
    #expect(answer.status == 415)
  }

  @Test(arguments: [
    "GET /topics", "GET /topics/t", "GET /topics/t/settings", "DELETE /topics/t",
    "POST /topics/t/trim?from=2",
    "POST /topics/t/cursors/c?from=earliest", "DELETE /topics/t/cursors/c", "POST /topics/t/groups/g/next",
    "GET /topics/t/requests",
  ])
  func aBodyWithoutAUseIsRefused(line: String) throws {
    let stage = try HTTPStage()
    _ = stage.ask("PUT /topics/t")
    let answer = stage.ask(line, #"{"before":2}"#, json)
    #expect(answer.status == 400 && answer.body.contains("takes no body"), "\(answer.body)")
    #expect(stage.ask("GET /topics/t/settings").status == 200)
  }
}
