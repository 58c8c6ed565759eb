/** A worker process of the laboratory. Started by fleet.ts. */
import { openDesk, serveDesk } from "./desk.ts";

serveDesk(openDesk);
