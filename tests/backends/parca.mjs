// SPDX-License-Identifier: BSD-2-Clause
// Reads requests to Parca's WriteRaw by the messages of Parca's published client. A field that these do not know is an error.
//   node parca.mjs FOLDER FILE…    FOLDER: where the client is installed (scripts/setup backends)
// Writes the profile of each into FILE.pprof, and prints a line of JSON: its labels.
import { readFileSync, writeFileSync } from "node:fs";

const [folder, ...files] = process.argv.slice(2);
const { WriteRawRequest } = await import(`${folder}/node_modules/@parca/client/dist/parca/profilestore/v1alpha1/profilestore.js`);

for (const file of files) {
	const request = WriteRawRequest.fromJsonString(readFileSync(file, "utf8"), { ignoreUnknownFields: false });
	const again = WriteRawRequest.fromBinary(WriteRawRequest.toBinary(request));
	if (!WriteRawRequest.equals(request, again)) throw new Error("it is another one when it was written as protobuf");
	const [series] = request.series;
	if (request.series.length !== 1 || series.samples.length !== 1 || !request.normalized) throw new Error("not one normalized profile");
	writeFileSync(`${file}.pprof`, series.samples[0].rawProfile);
	console.log(JSON.stringify(Object.fromEntries(series.labels.labels.map((l) => [l.name, l.value]))));
}
