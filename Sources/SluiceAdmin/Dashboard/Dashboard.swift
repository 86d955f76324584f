import SluiceAccess
import SluiceTLS

/// The page about the broker: one document with everything in it, which fetches nothing but this listener's own events and records.
enum Dashboard {
  /// The only style and the only script that a browser takes are those that are meant: it knows them by their hashes.
  static let response: HTTPResponse = {
    let style = "\n\(DashboardStyle.text)\n"
    let script = "\n\(DashboardScript.text)\n"
    let page = """
      <!doctype html>
      <html lang="en">
      <head>
      <meta charset="utf-8">
      <meta name="viewport" content="width=device-width, initial-scale=1">
      <meta name="color-scheme" content="light dark">
      <title>Sluice</title>
      <link rel="icon" href="data:,">
      <style>\(style)</style>
      </head>
      \(DashboardMarkup.body)
      <script>\(script)</script>
      </html>
      """
    var response = HTTPResponse(type: "text/html; charset=utf-8", body: Array(page.utf8))
    response.headers.append(
      HTTPHeader(
        HTTPResponse.noContentPolicy.name,
        "default-src 'none'; script-src \(hash(script)); style-src \(hash(style)); connect-src 'self'; img-src data:; "
          + "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"))
    return response
  }()

  private static func hash(_ text: String) -> String {
    // 32 bytes leave one place to fill.
    "'sha256-\(Base64Text.standard.encode(sha256(Array(text.utf8))))='"
  }
}
