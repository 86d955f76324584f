import SluiceDoors
import SluiceWire
import Testing

/// Keys and headers with characters outside ASCII.
@Suite struct HTTPKeyTests {
  private let stage: HTTPStage

  init() throws {
    stage = try HTTPStage()
  }

  @Test func keysAndHeadersOfAnyScriptStayWhatTheyAre() {
    #expect(stage.publish("t", "1", "Sluice-Key: ä", "Sluice-Header-Name: Łódź").status == 200)
    #expect(stage.publish("t", "2", "Sluice-Key: ö").status == 200)
    let all = stage.ask("GET /topics/t?from=earliest&until=live").body
    #expect(all.contains("\"key\":\"ä\"") && all.contains("\"key\":\"ö\""), "\(all)")
    #expect(all.contains("{\"name\":\"name\",\"value\":\"Łódź\"}"), "\(all)")
    let one = stage.ask("GET /topics/t?from=earliest&until=live&key=%C3%A4").body
    #expect(one.contains("\"payload\":\"1\"") && !one.contains("\"payload\":\"2\""), "\(one)")
  }

  @Test func idempotencyKeysThatDifferDontHideEachOther() {
    #expect(stage.publish("t", "1", "Idempotency-Key: ä").body.contains("\"lastOffset\":0"))
    #expect(stage.publish("t", "2", "Idempotency-Key: ö").body.contains("\"lastOffset\":1"))
    #expect(stage.publish("t", "2", "Idempotency-Key: ö").body.contains("\"isDuplicate\":true"))
  }

  @Test func bytesThatAreNotTextAreRefusedWithAReason() {
    let client = stage.begin("POST /topics/t", "x", bytes: [Array("Sluice-Key: ".utf8) + [0xE4]])
    #expect(client.text.hasPrefix("HTTP/1.1 400 "), "\(client.text)")
    #expect(client.text.contains("isn't UTF-8; send a key of other bytes in base64, as Sluice-Key-Base64"))
  }

  @Test func keysOfBytesGoInAndComeOutInBase64() {
    #expect(stage.publish("t", "1", "Sluice-Key-Base64: /wA=").status == 200)
    #expect(stage.publish("t", "2", "Sluice-Key-Base64: /wE=").status == 200)
    let all = stage.ask("GET /topics/t?from=earliest&until=live").body
    #expect(all.contains("\"key_base64\":\"/wA=\"") && all.contains("\"key_base64\":\"/wE=\""), "\(all)")
    let one = stage.ask("GET /topics/t?from=earliest&until=live&key-base64=/wE=").body
    #expect(one.contains("\"payload\":\"2\"") && !one.contains("\"payload\":\"1\""), "\(one)")
  }

  @Test(arguments: [
    ["Sluice-Key-Base64: no base64!"], ["Sluice-Key: a", "Sluice-Key-Base64: /wA="],
  ]) func aKeyThatSaysNothingIsRefused(fields: [String]) {
    #expect(stage.begin("POST /topics/t", "x", fields).text.hasPrefix("HTTP/1.1 400 "))
  }
}
