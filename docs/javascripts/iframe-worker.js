// A browser does not start workers for pages that are opened as files, and the site search runs in one.
// There, and only there, it runs in a hidden frame instead, which behaves as a worker would.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.onmessage = null;
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      this.ready = new Promise((resolve) => {
        this.frame.addEventListener("load", () => this.start(url).then(resolve), { once: true });
      });
      document.documentElement.appendChild(this.frame);
    }

    // Give the frame what a worker has, then load the script of the worker in it.
    start(url) {
      const inside = this.frame.contentWindow;
      const place = new URL(url, location.href);
      const load = (source) =>
        new Promise((resolve, reject) => {
          const script = inside.document.createElement("script");
          script.src = new URL(source, place).href;
          script.onload = resolve;
          script.onerror = () => reject(new Error(`${script.src} cannot be loaded`));
          inside.document.head.appendChild(script);
        });
      inside.importScripts = (...sources) =>
        sources.reduce((before, source) => before.then(() => load(source)), Promise.resolve());
      inside.postMessage = (data) => {
        const message = new MessageEvent("message", { data });
        this.dispatchEvent(message);
        if (this.onmessage) this.onmessage(message);
      };
      return load(place);
    }

    postMessage(data) {
      this.ready.then(() => {
        const inside = this.frame.contentWindow;
        inside.dispatchEvent(new inside.MessageEvent("message", { data }));
      });
    }

    terminate() {
      this.frame.remove();
    }
  };
}
