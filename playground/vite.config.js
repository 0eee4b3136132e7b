import { defineConfig } from "vite";

export default defineConfig({
  // The page works from any folder, and scenarios of the repository are read from above this one.
  base: "./",
  server: { fs: { allow: [".."] } },
  worker: { format: "es" },
  build: { target: "es2022", chunkSizeWarningLimit: 900, reportCompressedSize: false, assetsInlineLimit: 0 },
});
